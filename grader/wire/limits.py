"""How much is taken: of what is handed in, of what crosses a wall, of a submission's processes and its programs.

No course changes these; those that one may set are in ``sandbox/limits.py``. Where no unit is named a number counts
bytes (MAX_FILE), things (MAX_FILES) or wall seconds (START_SECONDS). What one parser alone needs stands with it
(``frames.MAX_DEPTH``), as do the sizes of caches and of texts, which bound nothing that is handed in.
"""

MIB = 1 << 20

# Work that was handed in. Whatever is over a limit is left out and named in a note.
MAX_FILE = 5 * MIB  # of code
MAX_NOTEBOOK = 64 * MIB  # with its outputs, which are left out while it is read
MAX_TOTAL = 20 * MIB  # of code in one submission
MAX_READ = 128 * MIB  # of files of one submission, outputs and all; also the largest .zip that is opened
MAX_FILES = 500  # .py files and notebooks of one submission
MAX_ENTRIES = 10_000  # files and folders looked at to find them
MAX_FOLDERS_DEEP = 8
MAX_ZIPS = 5  # opened in one folder
MAX_NAME = 500  # characters of a path in a .zip
MAX_CELL = 200_000  # characters; a longer cell is not searched for IPython syntax
MAX_BRACKETS = 2_000_000  # in all outputs of a notebook

# A frame of anybody's. The largest are of our own: inputs on their way to a program, and its results.
MAX_HEADER = 8 * MIB
MAX_BLOBS = 256 * MIB  # of one frame, together

# The child in which a submission's code runs. Whatever is over one of these ends it.
GRACE_SECONDS = 2.0  # of CPU time: after its limit a task is interrupted; what cannot be is killed so much later
KERNEL_SECONDS = GRACE_SECONDS / 2  # of CPU time of the kernel in a task, which do not count towards its limit
LOOK_SECONDS = 0.1  # between two looks at its folder and its threads
MAX_ANSWER = 16 * MIB  # all its frames together
MAX_TEXT = 4000  # characters of an answer that is text
MAX_ANSWER_HEADER = 2 * MIB  # of one of them
MAX_STRAY = 1000  # frames that nobody asked for
MAX_SCRATCH = 64 * MIB  # in the one folder that it may write to
MAX_SCRATCH_FILES = 1000
MAX_OPEN = 64  # descriptors
MAX_THREADS = 1024  # a machine has only so many
MAX_PROCESSES = 64  # of a worker's sandbox, the child's among them, which may start none

# A worker, which is ours.
START_SECONDS = 600.0  # until it can be asked, however slow the machine is
GONE_SECONDS = 30.0  # until it has ended, once its pipe is closed: then it can be known what it died of
MAX_STDERR = 64 << 10  # kept of what it wrote about one submission
MAX_RESTARTS = 8  # children that one source gets: what ends its child is tried again, alone

# A program, admitted, compiled and run for its values.
MAX_PROGRAM = 4 * MIB  # of bytecode; what is larger than MAX_ANSWER never gets here
MAX_PROGRAM_TEXT = 16 * MIB  # characters in its one form
MAX_OPS = 20_000
MAX_STEPS = 200_000  # operations, or instructions of the compiler's, with every call written out
MAX_NESTED = 200  # regions, or calls, in one another: Python would end at three times as many calls of its own
MAX_RESULTS = 64
MAX_ARRAY = 1024 * MIB
MAX_PAPER_ARRAY = 1 << 45  # of a program that is read and never compiled
MAX_COLLECTIVES = 4_000  # written out; the facts of more do not fit into one answer
MAX_MEMORY = 512 * MIB  # over all devices; well below the least ``memory_mib`` of a course
MAX_OUTPUT = 64 * MIB  # over all devices and runs
STUCK_SECONDS = 40.0  # of wall time, in which its devices wait for each other: XLA's own patience
MAX_LOOKS = 16  # at arrays, of one task on one mesh: each traces and compiles what comes before it
