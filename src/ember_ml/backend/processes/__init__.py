"""Process groups: their contract, and how processes of NumPy meet."""
