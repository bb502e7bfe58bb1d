import socket

socket.socket(socket.AF_UNIX).connect("@TARGET@/unix.sock")
