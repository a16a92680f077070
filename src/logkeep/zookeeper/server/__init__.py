"""Clients of a running ZooKeeper server: sessions, four-letter words, and the AdminServer over HTTP."""
