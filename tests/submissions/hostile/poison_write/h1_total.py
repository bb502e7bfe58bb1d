open("@TARGET@/victim.txt", "w").write("owned")
