import os
raise RuntimeError(dict(os.environ))
