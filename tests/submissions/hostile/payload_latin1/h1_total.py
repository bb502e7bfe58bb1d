# café
megabytes = 10
