import json, os

open(json.__cached__, "ab").write(b"x")
