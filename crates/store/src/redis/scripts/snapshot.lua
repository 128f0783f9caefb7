-- What a pod needs to answer polls of a line. Changes nothing.
-- ARGV: 1 base and 2 count of departed numbers the pod has read · 3 how many at most
-- Reply: {HGETALL item, frontier, waiting, returning, entered, HGETALL rate, departed numbers,
--         count read now, 0|1 more to read} or {} if there is no such item
local fields = redis.call('HGETALL', ITEM)
local item = {}
for i = 1, #fields, 2 do item[fields[i]] = fields[i + 1] end
if item.removed ~= '0' then return {} end

local dropped, length = tonumber(item.dropped), redis.call('LLEN', DEPARTED)
local read = tonumber(ARGV[2])
if ARGV[1] ~= item.base or read > dropped + length or read < dropped then read = dropped end
local first, departed = read - dropped, {}
if first < length then
  departed = redis.call('LRANGE', DEPARTED, first, first + tonumber(ARGV[3]) - 1)
end
return {
  fields,
  first_waiting() or tonumber(item.tail) + 1,
  redis.call('ZCARD', WAITING),
  redis.call('ZCARD', RETURNING),
  redis.call('HLEN', ENTERED),
  redis.call('HGETALL', RATE),
  departed,
  read + #departed,
  first + #departed < length and 1 or 0,
}
