-- What a pod needs to answer polls of a line. Changes nothing.
-- ARGV: 1 base and 2 count of changes the pod has read · 3 how many at most
-- Reply: {HGETALL item, front, frontier, waiting, returning, entered, HGETALL rate, changes,
--         count read now, 0|1 more to read} or {} if there is no such item. A change is the number
--         that departed, or '+from:to', numbers below the base that wait
local fields = redis.call('HGETALL', ITEM)
local item = {}
for i = 1, #fields, 2 do item[fields[i]] = fields[i + 1] end
if item.removed ~= '0' then return {} end

local dropped, length = tonumber(item.dropped), redis.call('LLEN', DEPARTED)
local read = tonumber(ARGV[2])
if ARGV[1] ~= item.base or read > dropped + length or read < dropped then read = dropped end
local first, changes = read - dropped, {}
if first < length then
  changes = redis.call('LRANGE', DEPARTED, first, first + tonumber(ARGV[3]) - 1)
end
local front, began = first_waiting() or tonumber(item.tail) + 1, tonumber(item.base)
return {
  fields,
  front,
  front > began and front or first_behind(began) or tonumber(item.tail) + 1,
  redis.call('ZCARD', WAITING),
  redis.call('ZCARD', RETURNING),
  redis.call('HLEN', ENTERED),
  redis.call('HGETALL', RATE),
  changes,
  read + #changes,
  first + #changes < length and 1 or 0,
}
