with open("@TARGET@/results/mallory.json", "w") as file:
    file.write('{"earned": 5}')
