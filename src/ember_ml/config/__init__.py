"""Build objects from plain configurations, and describe objects as such."""
