"""Limits on submissions, on data that cross process boundaries, on a submission's processes, and on its programs.

Courses cannot change these. Limits that a course may set are in ``sandbox/limits.py``. Without a unit, a number counts
bytes (MAX_FILE), items (MAX_FILES) or wall seconds (START_SECONDS). A limit that only one parser needs is defined there
(``frames.MAX_DEPTH``), as are sizes of caches and texts, which do not limit submissions.
"""

MIB = 1 << 20

# Submissions. Files over a limit are left out and named in a note.
MAX_FILE = 5 * MIB  # of code
MAX_NOTEBOOK = 64 * MIB  # size with outputs, which the reader skips
MAX_TOTAL = 20 * MIB  # of code in one submission
MAX_READ = 128 * MIB  # of one submission's files with outputs; also of all opened .zip files together
MAX_FILES = 500  # .py files and notebooks in one submission
MAX_ENTRIES = 10_000  # files and folders searched for them
MAX_FOLDERS_DEEP = 8
MAX_ZIPS = 5  # .zip files that are opened in one folder
MAX_NAME = 500  # characters of a path in a .zip
MAX_CELLS = 10_000  # of one notebook
MAX_CELL = 200_000  # characters; a longer cell is not searched for IPython syntax
MAX_BRACKETS = 2_000_000  # in all outputs of a notebook

# The process that parses submissions.
READ_MEMORY_MIB = 2048  # address space; a text that needs more to parse is graded without facts about its source
READ_SECONDS = 20.0  # of CPU time for one file
READ_SECONDS_TOTAL = 60.0  # for all files of a submission, in all steps of a command

# Any frame. The largest are the grader's own: inputs for a program, and its results.
MAX_HEADER = 8 * MIB
MAX_BLOBS = 256 * MIB  # bytes of all blobs in one frame

# The child that runs a submission's code. Exceeding one of these ends it.
GRACE_SECONDS = 2.0  # of CPU time: after its limit a task is interrupted; if that fails, it is killed this much later
KERNEL_SECONDS = GRACE_SECONDS / 2  # of kernel CPU time in a task, not counted towards its limit
PATIENCE = 2  # exercises of a submission that end a process by a limit of time
IDLE_SECONDS = 2.0  # of idle time after these exercises, for each later process of the submission
LOOK_SECONDS = 0.1  # between two checks of its folder and its threads
MAX_ANSWER = 16 * MIB  # bytes of all frames of one answer
MAX_TEXT = 4000  # characters of an answer that is text
MAX_ANSWER_HEADER = 2 * MIB  # bytes in the header of one frame
MAX_STRAY = 1000  # unrequested frames
MAX_SCRATCH = 64 * MIB  # bytes in the one folder that it may write to
MAX_SCRATCH_FILES = 1000
MAX_OPEN = 64  # descriptors
MAX_THREADS = 1024  # each machine limits its threads
MAX_PROCESSES = 64  # in a worker's sandbox, with the child's; the child may start none

# A worker, which is trusted.
START_SECONDS = 600.0  # time to accept requests, even on a slow machine
GONE_SECONDS = 30.0  # time for a process to end after its pipe closed, so that its exit code is known
MAX_STDERR = 64 << 10  # bytes of its standard error that are kept for one submission
MAX_RESTARTS = 8  # child processes for one source; an ask that ends its child runs once more, alone

# A program, admitted, compiled and run for its values.
MAX_PROGRAM = 4 * MIB  # of bytecode; MAX_ANSWER stops larger programs before
MAX_PROGRAM_TEXT = 16 * MIB  # characters in its canonical form
MAX_OPS = 20_000
MAX_STEPS = 200_000  # operations, or instructions of the compiled program, with every call inlined
MAX_NESTED = 200  # nested regions, or calls; Python's recursion limit allows about three times as many
MAX_RESULTS = 64
MAX_ARRAY = 1024 * MIB
MAX_PAPER_ARRAY = 1 << 45  # bytes of an array in a program that is read and never compiled
MAX_COLLECTIVES = 4_000  # collectives after inlining every call; facts about more do not fit into one answer
MAX_MEMORY = 512 * MIB  # over all devices; well below the least ``memory_mib`` of a course
MAX_OUTPUT = 64 * MIB  # over all devices and runs
STUCK_SECONDS = 40.0  # wall time that its devices may wait for each other; XLA has an equal limit
MAX_LOOKS = 16  # inspections of arrays, for one task on one mesh: each traces and compiles all steps before it
