import json, os, struct, sys

seen = []


def frame(header):
    text = json.dumps({**header, "blobs": []}).encode()
    os.write(11, struct.pack("<I", len(text)) + text)


def note():
    told = "CAN" "ARY " + str(seen[-1])
    return {"chunk": "h1_total.py", "line": 1, "message": told, "kind": "raised"}


def twice(n):
    seen.append(n)
    if len(seen) == 22:
        caller = sys._getframe()
        while "number" not in caller.f_locals:
            caller = caller.f_back
        frame({"number": caller.f_locals["number"], "loaded": True, "faults": [note()]})
    return 2 * n


frame({"started": True, "loaded": True})
