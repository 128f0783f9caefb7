-- How many people are where. Changes nothing.
-- ARGV: none
-- Reply: {waiting, returning, missed, entered, joined, admitted, ended} or {} if there is no item
if not is_there() then return {} end
local item = item_fields('joined', 'admitted', 'ended')
return {
  redis.call('ZCARD', WAITING),
  redis.call('ZCARD', RETURNING),
  redis.call('HLEN', MISSED),
  redis.call('HLEN', ENTERED),
  tonumber(item.joined),
  tonumber(item.admitted),
  tonumber(item.ended),
}
