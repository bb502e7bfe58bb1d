"""Limits on submissions, on data that cross process boundaries, on a submission's processes, and on its programs.

Courses cannot change these limits. Limits that a course may set are in ``sandbox/limits.py``. Limits are in bytes
(MAX_FILE), items (MAX_FILES) or wall seconds (START_SECONDS), unless stated otherwise. A limit that only one parser
needs is defined in the parser's module (``frames.MAX_DEPTH``). Sizes of caches and texts do not limit submissions and
are defined where they are used.
"""

MIB = 1 << 20

# Limits of submissions. Files over a limit are left out, and the report names the files.
MAX_FILE = 5 * MIB  # bytes of code in one file
MAX_NOTEBOOK = 64 * MIB  # bytes of one notebook, including its outputs, which the reader skips
MAX_TOTAL = 20 * MIB  # bytes of all code in one submission
MAX_READ = 128 * MIB  # bytes of all files in one submission, including outputs; also bytes of all opened .zip files
MAX_FILES = 500  # .py files and notebooks in one submission
MAX_ENTRIES = 10_000  # files and folders that are searched for code
MAX_FOLDERS_DEEP = 8
MAX_ZIPS = 5  # .zip files that are opened in one folder
MAX_NAME = 500  # characters of a path in a .zip
MAX_CELLS = 10_000  # cells of one notebook
MAX_CELL = 200_000  # characters of one cell; a longer cell is not searched for IPython syntax
MAX_BRACKETS = 2_000_000  # brackets in all outputs of a notebook

# Limits of the process that parses submissions.
READ_MEMORY_MIB = 2048  # MiB of address space; a file that needs more is graded without facts about its source
READ_SECONDS = 20.0  # CPU time in which one file is parsed
READ_SECONDS_TOTAL = 60.0  # CPU time in which one command parses all files of a submission

# Limits of each frame. The largest frames are made by the grader: a program's inputs, and a program's results.
MAX_HEADER = 8 * MIB
MAX_BLOBS = 256 * MIB  # bytes of all blobs in one frame

# Limits of the child process that runs a submission's code. A child that exceeds one of these limits is ended.
GRACE_SECONDS = 2.0  # CPU time after which an interrupted task that is still running is killed
KERNEL_SECONDS = GRACE_SECONDS / 2  # kernel CPU time that does not count towards a task's limit
IDLE_SECONDS = 2.0  # after one timeout in a submission, its later child processes may be idle for this long
ASLEEP_SECONDS = 0.5  # if a child is idle this long and sends no frame, other submissions are graded meanwhile
LOOK_SECONDS = 0.1  # time between two checks of the child's folder and threads
MAX_ANSWER = 16 * MIB  # bytes of all frames of one answer
MAX_TEXT = 4000  # characters of an answer that is text
MAX_ANSWER_HEADER = 2 * MIB  # bytes in the header of one frame
MAX_STRAY = 1000  # unrequested frames
MAX_SCRATCH = 64 * MIB  # bytes in the one folder that the child may write to
MAX_SCRATCH_FILES = 1000
MAX_OPEN = 64  # open file descriptors
MAX_THREADS = 1024  # threads of one child; a child must not use up the machine's threads
MAX_PROCESSES = 64  # processes in a worker's sandbox, including the child, which may start no process

# Limits of a worker, which is trusted.
START_SECONDS = 600.0  # time until the worker accepts requests, even on a slow machine
GONE_SECONDS = 30.0  # time for a process to end after its pipe closed, so that its exit code is known
MAX_STDERR = 64 << 10  # bytes of the worker's standard error that are kept for one submission
MAX_RESTARTS = 8  # child processes that one submission's code may get, as a new child replaces each that ended

# Limits of a program that is admitted, compiled and run for its values.
MAX_PROGRAM = 4 * MIB  # bytes of bytecode; MAX_ANSWER stops even larger programs earlier
MAX_PROGRAM_TEXT = 16 * MIB  # characters of a program in canonical form
MAX_OPS = 20_000
MAX_STEPS = 200_000  # operations of a program, or instructions of its compiled form, counted again for each call
MAX_NESTED = 200  # levels of nested regions or calls; Python's recursion limit allows about three times as many
MAX_RESULTS = 64
MAX_ARRAY = 1024 * MIB
MAX_PAPER_ARRAY = 1 << 45  # bytes of an array in a program that is read and never compiled
MAX_COLLECTIVES = 4_000  # collectives after inlining every call; facts about more collectives do not fit into an answer
MAX_MEMORY = 512 * MIB  # bytes of temporaries on all devices together; well below the least ``memory_mib`` of a course
MAX_OUTPUT = 64 * MIB  # bytes of results, on all devices and in all runs together
STUCK_SECONDS = 40.0  # wall time for which a program's devices may wait for each other; XLA has an equal limit
WARN_SECONDS = 10  # wall time after which XLA reports that devices wait for each other
MAX_LOOKS = 16  # a task may inspect this many arrays on one mesh; each time, all steps before the array are compiled
