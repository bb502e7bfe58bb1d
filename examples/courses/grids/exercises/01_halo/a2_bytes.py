"""# A2 How much a halo costs

A grid of float64[N, N] is cut into X · Y equal blocks, one for each device, and each step sends one edge of every block to each of its four
neighbours. There is nothing to write here: answer the questions with your own numbers.

Check your work: shardlings check a2_bytes
Notes on all exercises of this module: see README.md, or run shardlings show 01_halo
"""

import math


# Question halo_bytes [KiB]
# Your numbers: run `shardlings show halo_bytes`.
#
halo_bytes = None  # TODO: your answer


# Question strips_or_blocks [sent, held]
# Your numbers: run `shardlings show strips_or_blocks`.
#
strips_or_blocks = None  # TODO: your answer


# Question what_scales [one of A, B, C, D]
# Your numbers: run `shardlings show what_scales`.
#
what_scales = None  # TODO: your answer


# Question what_sets_the_bytes [some of A, B, C, D, E]
# Which of these change the bytes that a device sends in one step?
#
# Your options: run `shardlings show what_sets_the_bytes`.
#
what_sets_the_bytes = None  # TODO: your answer


# Question overlapped_step [an order of A, B, C, D]
# In which order does a device do these, so that most of the exchange runs beside compute?
#
# Your options: run `shardlings show overlapped_step`.
#
overlapped_step = None  # TODO: your answer


# Question halo_formula [a formula of N, X, Y, h]
# A grid of float64[N, N] is cut into X · Y blocks, and the halo is h elements wide. How many
# bytes does a device send in one step? Ignore the corners.
#
# Answer with a formula of N, X, Y, h, as a text in quotes such as "2*h**2".
halo_formula = None  # TODO: your answer


# Question why_small_blocks_wait [in your own words]
# Why does the exchange take a larger part of each step when the same grid is cut among more
# devices? Two sentences.
#
# Answer in your own words, as a text in quotes; the staff reads it and gives its points.
why_small_blocks_wait = None  # TODO: your answer
