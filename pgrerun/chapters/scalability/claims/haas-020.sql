SELECT waits AS still_there FROM one_slow_page WHERE session = 'needs another page'
