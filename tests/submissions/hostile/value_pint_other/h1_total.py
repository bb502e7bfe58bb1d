class Quantity:
    magnitude = 10.0
    units = "megabyte * 0 + 1"


megabytes = Quantity()
