"""Training on several processes and hosts: the launcher, and the signs of life that its ranks give."""
