-- How many people are where. Changes nothing.
-- ARGV: none
-- Reply: {waiting, returning, missed, entered, base, frontier, tail, joined, admitted, ended,
--         and of those completed, expired, left, abandoned} or {} if there is no item
if not is_there() then return {} end
local item = item_fields('base', 'tail', 'joined', 'admitted', 'ended', 'ended:C', 'ended:E', 'ended:L', 'ended:A')
local function count(field) return tonumber(item[field] or '0') end
return {
  redis.call('ZCARD', WAITING),
  redis.call('ZCARD', RETURNING),
  redis.call('HLEN', MISSED),
  redis.call('HLEN', ENTERED),
  count('base'),
  first_waiting() or count('tail') + 1,
  count('tail'),
  count('joined'),
  count('admitted'),
  count('ended'),
  count('ended:C'),
  count('ended:E'),
  count('ended:L'),
  count('ended:A'),
}
