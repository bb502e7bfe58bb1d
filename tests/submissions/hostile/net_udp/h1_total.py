import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"the tests", ("127.0.0.1", @PORT@))
