import zlib
raise RuntimeError(zlib.decompress(open("@TARGET@/git-object", "rb").read()))
