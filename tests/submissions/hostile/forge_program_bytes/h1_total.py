import os, struct, json


def frame(header, blobs=()):
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(blobs)


os.write(11, frame({"number": 0, "program": True}, [os.urandom(3000)]))
os._exit(0)
