# only a comment

   # another