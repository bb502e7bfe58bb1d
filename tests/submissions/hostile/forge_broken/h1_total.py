import os, struct, json


def frame(header, blobs=()):
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(blobs)


for number in range(3):
    os.write(11, frame({"number": number, "fault": {"kind": "broken", "message": "the grader failed"}}))
os.write(11, frame({"from": "worker", "end": "worker"}))
os._exit(0)
