"""Backups and restores of one application over HTTP.

operations      what a request does, without HTTP
routes          the operations as paths, methods and bodies
guard           which requests are let in: addresses, names of hosts, tokens
openapi         the description of all operations
connection      one connection; the oldest idle one ends where too many are open
server          address, TLS, token file, limits of connections
"""
