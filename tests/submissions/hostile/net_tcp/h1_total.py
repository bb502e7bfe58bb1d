import socket

socket.create_connection(("127.0.0.1", @PORT@), 2).sendall(b"the tests")
