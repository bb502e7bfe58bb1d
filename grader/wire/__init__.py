"""What crosses the walls between processes: frames, plain values, arrays, the words for what went wrong, limits.

Both sides of every wall read this; nothing here is secret, and nothing of ours is imported.
"""
