for place in ("/dev/shm/shardlings-@PORT@", "@TARGET@/message"):
    try:
        open(place, "w").write("hello")
    except OSError:
        pass
