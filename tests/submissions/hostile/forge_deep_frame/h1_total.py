import os, struct, json


def frame(header, blobs=()):
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(blobs)


for depth in (90, 200, 500, 900, 950, 980, 990, 995):
    text = b'{"number": 0, "fault": {"message": ' + b"[" * depth + b"]" * depth + b'}, "blobs": []}'
    os.write(11, struct.pack("<I", len(text)) + text)
