{{/* The prefix of every name. 44 characters, because the longest suffix, -scheduler-internal, has 19 and a name of a Service
has at most 63. */}}
{{- define "daegi.name" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 44 | trimSuffix "-" }}{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 44 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{/* The replicas of one role's Deployment, empty if the manifest must not set them. With autoscaling the first install starts
the least the autoscaler keeps, otherwise it would start one pod; an upgrade keeps what runs. `helm template` reaches no
cluster and leaves the field out, so that applying its output again does not undo the autoscaler. */}}
{{- define "daegi.replicas" -}}
{{- $its := get .root.Values .role -}}
{{- if not (and $its.autoscaling $its.autoscaling.enabled) -}}
{{- $its.replicas -}}
{{- else if lookup "v1" "Namespace" "" "kube-system" -}}
{{- $running := lookup "apps/v1" "Deployment" .root.Release.Namespace (printf "%s-%s" (include "daegi.name" .root) .role) -}}
{{- dig "spec" "replicas" $its.autoscaling.minReplicas $running -}}
{{- end -}}
{{- end -}}

{{- define "daegi.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Selector labels of the pods of one role: (dict "root" $ "role" "api"). */}}
{{- define "daegi.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "daegi.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "daegi.name" .) }}
{{- end -}}

{{/* Longer than a whole shutdown: the sleep of preStop, a second in which a pod is not ready but listens, the
drain, and two seconds to settle. */}}
{{- define "daegi.gracePeriod" -}}
{{ add .Values.preStopSeconds .Values.drainSeconds 1 2 5 }}
{{- end -}}

{{- define "daegi.env" -}}
- name: DAEGI_STORE
  {{- if .root.Values.store.fromSecret.name }}
  valueFrom:
    secretKeyRef: {{- toYaml .root.Values.store.fromSecret | nindent 6 }}
  {{- else }}
  value: {{ .root.Values.store.url | quote }}
  {{- end }}
- name: DAEGI_KAFKA
  value: {{ .root.Values.kafka | quote }}
- name: DAEGI_DRAIN_MS
  value: {{ mul .root.Values.drainSeconds 1000 | quote }}
- name: DAEGI_LOG
  value: {{ .root.Values.log.filter | quote }}
- name: DAEGI_LOG_FORMAT
  value: {{ .root.Values.log.format | quote }}
{{- /* Each role gets only the secrets that it needs. */}}
{{- if and .root.Values.tracing.endpoint (ne .role "consumer") }}
- name: DAEGI_OTLP_ENDPOINT
  value: {{ .root.Values.tracing.endpoint | quote }}
- name: DAEGI_TRACE_RATIO
  value: {{ .root.Values.tracing.ratio | quote }}
{{- end }}
{{- $secrets := get (dict "api" (dict "TICKET_SECRETS" "ticket-secrets" "PASS_KEY" "pass-key")
  "scheduler" (dict "TICKET_SECRETS" "ticket-secrets" "ADMIN_TOKEN" "admin-token")
  "consumer" (dict "TICKET_SECRETS" "ticket-secrets")) .role }}
{{- range $variable, $key := $secrets }}
- name: DAEGI_{{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ $.root.Values.secrets.name }}
      key: {{ $key }}
{{- end }}
{{- range $name, $value := .root.Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}
