return {1, 1.9, -1.9, true, false, 'x', {ok = 'FINE'}, {2, {3}}, {}, 4, nil, 5}
---
return nil
---
return
---
return false
---
return true
---
return {ok = 'FINE'}
---
return {err = 'CODE text'}
---
return {err = 'CODE text', ok = 'FINE'}
---
return {1, {err = 'CODE inside'}}
---
return {a = 1}
---
return setmetatable({}, {__index = function() return 1 end})
---
return function() end
---
return 1e15
---
return -3
---
return {KEYS[1], ARGV[1], ARGV[2], ARGV[3], #KEYS, #ARGV}
---
return ARGV[1] + 1
---
return redis.status_reply('FINE')
---
return redis.status_reply(3)
---
return redis.error_reply('word')
---
return redis.error_reply('CODE text')
---
return redis.error_reply('-CODE text')
---
return redis.error_reply('-CODE')
---
return redis.error_reply(3)
---
return redis.sha1hex('abc')
---
return {redis.call('SET', KEYS[1], 1700000000123456), redis.call('GET', KEYS[1])}
---
return {redis.call('SET', KEYS[1], 0.1), redis.call('GET', KEYS[1])}
---
return {redis.call('SET', KEYS[1], 1e17), redis.call('GET', KEYS[1])}
---
return {redis.call('SET', KEYS[1], -1/0), redis.call('GET', KEYS[1])}
---
return {redis.call('SET', KEYS[1], ARGV[2]), redis.call('GET', KEYS[1])}
---
return {redis.call('DEL', KEYS[1]), tostring(redis.call('GET', KEYS[1])), type(redis.call('TYPE', KEYS[1]).ok)}
---
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'f', 1.5)
return {type(redis.call('HLEN', KEYS[1])), redis.call('HMGET', KEYS[1], 'none', 'f')}
---
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'f', 1.5, 'g', 'x', 'f', 2)
return {redis.call('HSCAN', KEYS[1], 0), redis.call('HSCAN', KEYS[1], '0', 'COUNT', 100)}
---
redis.call('DEL', KEYS[1])
return redis.call('HSCAN', KEYS[1], 0)
---
redis.call('SET', KEYS[1], 'text')
return redis.pcall('HSCAN', KEYS[1], 0).err
---
local reply = redis.call('HMGET', KEYS[1], 'none', 'f')
return {tostring(reply[1]), reply[2]}
---
return redis.pcall('GET', KEYS[1])
---
return redis.pcall('GET', KEYS[1]).err
---
local value = redis.call('GET', KEYS[1])
return value
---
local ok, problem = pcall(redis.call, 'GET', KEYS[1])
return {tostring(ok), problem}
---
return {pcall(function(...) return ... end, 1, 2)}
---
return 1e30
---
return 0/0
---
return 9223372036854775807
---
-- What came before an error stays.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], 'kept')
local reply = redis.call('NO-SUCH-COMMAND')
---
return redis.call('GET', KEYS[1])
---
return redis.pcall('GET')
---
return redis.pcall()
---
return redis.pcall('GET', {})
---
return redis.pcall('GET', true)
---
return redis.pcall('hset', KEYS[1], 'f')
---
return redis.pcall('NO-SUCH-COMMAND')
---
error('boom')
---
error(redis.error_reply('MY boom'))
---
local x = nil
return x.y
---
return 1 + {}
---
local function endless() return endless() + 1 end
return endless()
---
x = 1
---
function f() end
---
return x
---
return os
---
return io
---
return require
---
return print
---
redis.call = nil
---
redis.mine = 1
---
KEYS = {}
---
assert(false, 'not so')
---
retrn 1
---
local list = {}
for i = 1, 100 do list[i] = i end
return {select('#', unpack(list)), table.concat({1, 2}, ','), string.format('%.0f', 1.8e15), tostring(1.8e15)}
---
return {tonumber('12'), tonumber('x') == nil and 'nil', math.floor(2.7), string.rep('ab', 3), ('x'):byte()}
---
local sorted = {3, 1, 2}
table.sort(sorted)
return sorted
---
return {type(loadfile), 1}
---
#!lua flags=allow-oom
redis.call('SET', KEYS[1], 'flagged')
return redis.call('GET', KEYS[1])
---
#!lua flags=allow-oom

return missing
---
#!lua
return {KEYS[1], ARGV[1], #ARGV}
