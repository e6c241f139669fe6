"""What goes out of the house on its own account: deliveries to webhooks.

Law: nothing is sent to whom nobody allowed, and what a name leads to is judged at every connection.
"""
