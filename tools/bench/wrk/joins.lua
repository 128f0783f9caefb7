-- Joins users without a ticket. The file args[1] has the path of the join and the prefix of the user ids.
local path, prefix, count = nil, nil, 0

function init(args)
  local lines = io.lines(args[1])
  path, prefix = lines(), lines()
end

function request()
  count = count + 1
  return wrk.format("POST", path, { ["user-id"] = string.format("%s%08d", prefix, count) })
end
