import os
raise RuntimeError(os.listdir("@TARGET@/submitted"))
