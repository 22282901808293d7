"""Works behind the pages that explore samples."""
