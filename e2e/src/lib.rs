//! Black-box tests and their servers.
