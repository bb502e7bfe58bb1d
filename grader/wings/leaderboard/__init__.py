"""A class's leaderboard: step times that ``grader.clock`` computes, under names that the learners chose."""
