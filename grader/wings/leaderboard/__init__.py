"""A class's leaderboard: step times by the clock, under names that the learners chose."""
