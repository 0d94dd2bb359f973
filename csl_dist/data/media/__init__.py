"""A video's pixels, from a file or a folder of pictures, and when they are shown."""
