import os, struct, json


def frame(header, blobs=()):
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(blobs)


while True:
    os.write(11, frame({"x": "y" * 60000}))
