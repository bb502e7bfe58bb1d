"""Work that is looked at again whenever it is saved.

In come a course, the learner's files and keys; out go a screen of text and, on request, a file put back as it was
handed out.
"""
