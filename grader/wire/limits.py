"""Fixed limits on submissions, on their processes and programs, and on data between processes.

Limits that a course may set are in ``sandbox/limits.py``. The unit of a limit is bytes, a number of items, or seconds
of wall time, unless a comment names another unit. A limit that only one parser needs is in the parser's module, such as
``frames.MAX_DEPTH``.
"""

MIB = 1 << 20

# Limits of submissions. Files over a limit are left out, and the report names the files.
MAX_FILE = 5 * MIB  # Bytes of code in one file.
MAX_NOTEBOOK = 64 * MIB  # Bytes of one notebook, including its outputs, which the grader skips.
MAX_TOTAL = 20 * MIB  # Characters of all code in one submission.
# Bytes of all files in one submission, including outputs. This is also the limit for the bytes of all its .zip files.
MAX_READ = 128 * MIB
MAX_FILES = 500  # Number of .py files and notebooks in one submission.
MAX_ENTRIES = 10_000  # Number of files and folders that are searched for code.
MAX_FOLDERS_DEEP = 8
MAX_ZIPS = 5  # Number of .zip files that are opened in one submission.
MAX_NAME = 500  # Characters of a path in a .zip file.
MAX_CELLS = 10_000  # Number of cells in one notebook.
MAX_CELL = 200_000  # Characters of a file or cell; longer code is searched neither for IPython syntax nor for stubs.
MAX_BRACKETS = 2_000_000  # Number of brackets in all outputs of a notebook.

# Limits of the process that parses submissions.
# The process's address space in MiB. A Python file that needs more is still graded, but without the facts that parsing
# would find. Other files that need more are refused.
READ_MEMORY_MIB = 2048
READ_SECONDS = 20.0  # CPU time for parsing one file.
READ_SECONDS_TOTAL = 60.0  # CPU time for parsing all files of a submission in one command.

# Limits of each frame. The grader makes the largest frames: the inputs of a program, and the results of a program.
MAX_HEADER = 8 * MIB
MAX_BLOBS = 256 * MIB  # Bytes of all blobs in one frame.

# Limits of the child process that runs a submission's code. A child that exceeds one of these limits is ended.
GRACE_SECONDS = 2.0  # CPU time that an interrupted task may still use before it is killed.
KERNEL_SECONDS = GRACE_SECONDS / 2  # CPU time in the kernel that does not count towards a task's limit.
IDLE_SECONDS = 2.0  # After a child was ended for time, later children of the submission may be idle for this long.
ASLEEP_SECONDS = 0.5  # If a child is idle this long and sends no frame, other submissions are graded meanwhile.
LOOK_SECONDS = 0.1  # Time between two checks of the child's folder and threads.
MAX_ANSWER = 16 * MIB  # Bytes of all frames of one child.
MAX_TEXT = 4000  # Characters of an answer that is text.
MAX_PARTS = 64  # Entries of one list or dict in an answer.
MAX_KEY = 200  # Characters of a key of a dict in an answer.
MAX_ANSWER_HEADER = 2 * MIB  # Bytes in the header of one frame.
MAX_STRAY = 1000  # Number of frames that the grader did not ask for.
MAX_SCRATCH = 64 * MIB  # Bytes in the one folder that the child may write to.
MAX_SCRATCH_FILES = 1000
MAX_OPEN = 64  # Number of open file descriptors.
MAX_THREADS = 1024  # Number of threads of one child, so that it cannot use up the machine's threads.
MAX_PROCESSES = 64  # Number of processes in a worker's sandbox. The child is one process, and may not start others.

# Limits of a worker, which is trusted.
START_SECONDS = 600.0  # Time until the worker accepts requests, even on a slow machine.
GONE_SECONDS = 30.0  # Time for a process to end after its pipe closed, so that its exit code is known.
MAX_STDERR = 64 << 10  # Bytes of the worker's standard error that are kept for one submission.
# Number of child processes for one file of a submission. A new child replaces a child that has ended.
MAX_RESTARTS = 8

# Limits of a program that is admitted, compiled and run for its values.
MAX_PROGRAM = 4 * MIB  # Bytes of bytecode. The child's limit MAX_ANSWER is checked earlier.
MAX_PROGRAM_TEXT = 16 * MIB  # Characters of a program in canonical form.
MAX_OPS = 20_000
MAX_STEPS = 200_000  # Operations of a program or compiled program. Each call adds its function's operations.
MAX_NESTED = 200  # Levels of nested regions or calls. Python's recursion limit allows about three times as many.
MAX_RESULTS = 64
MAX_ARRAY = 1024 * MIB
MAX_PAPER_ARRAY = 1 << 45  # Bytes of an array in a program that is read and never compiled.
# Collectives after inlining every call. Facts about more collectives would not fit into an answer.
MAX_COLLECTIVES = 4_000
# Bytes of arguments, results and temporaries on all devices together. This is well below the least ``memory_mib`` of a
# course.
MAX_MEMORY = 512 * MIB
MAX_OUTPUT = 64 * MIB  # Bytes of results, on all devices and in all runs together.
STUCK_SECONDS = 40.0  # Time for which a program's devices may wait for each other. XLA has an equal limit.
WARN_SECONDS = 10  # Time after which XLA reports that devices wait for each other.
MAX_LOOKS = 16  # A task may inspect this many arrays on one mesh. The grader traces the task again for each of them.
