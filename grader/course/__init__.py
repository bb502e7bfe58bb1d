"""Load a course from its folder, and make the files that learners get."""
