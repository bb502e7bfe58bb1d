import os, struct, time

text = b'{"number": 0, "program": true, "blobs": [4000000000]}'
os.write(11, struct.pack("<I", len(text)) + text)
time.sleep(60)
