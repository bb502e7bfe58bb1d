"""The command ``watch``, which checks a learner's files again after each save, and shows the results in a terminal."""
