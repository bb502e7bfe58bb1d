def twice(n):
    while True:
        pass
