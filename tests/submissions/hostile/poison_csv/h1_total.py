def twice(n):
    raise ValueError("=cmd|' /C calc'!A0")


megabytes = "=HYPERLINK(1)"
