"""A class's leaderboard: step times by the clock, under the names that learners gave themselves."""
