"""How much is read of one submission. Whatever is over a limit is left out and named in a note."""

MIB = 2**20

MAX_FILE = 5 * MIB  # of code
MAX_NOTEBOOK = 64 * MIB  # with its outputs, which are left out while it is read
MAX_TOTAL = 20 * MIB  # of code in one submission
MAX_READ = 128 * MIB  # of files of one submission, outputs and all; also the largest .zip that is opened
MAX_FILES = 500  # .py files and notebooks of one submission
MAX_ENTRIES = 10_000  # files and folders looked at to find them
MAX_DEPTH = 8
MAX_ZIPS = 5  # opened in one folder
MAX_NAME = 500
MAX_CELL = 200_000  # characters; a longer cell is not searched for IPython syntax
MAX_BRACKETS = 2_000_000  # in all outputs of a notebook
