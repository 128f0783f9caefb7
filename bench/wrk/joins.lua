-- Joins people who were never here before, at the door and with the prefix a file names.
local door, prefix, count = nil, nil, 0

function init(args)
  local lines = io.lines(args[1])
  door, prefix = lines(), lines()
end

function request()
  count = count + 1
  return wrk.format("POST", door, { ["user-id"] = string.format("%s%08d", prefix, count) })
end
