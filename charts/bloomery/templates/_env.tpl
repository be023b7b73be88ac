{{/* The complete configuration of the operator, in the order of `bloomery-operator --help`. */}}
{{- define "bloomery.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: BLOOMERY_LOG
  value: {{ .Values.log.filter | quote }}
{{- with include "bloomery.watchedNamespaces" . | fromJsonArray }}
- name: BLOOMERY_NAMESPACES
  value: {{ join "," . }}
{{- end }}
- name: BLOOMERY_HTTP_ADDR
  value: "[::]:8080"
- name: BLOOMERY_REPORT_ADDR
  value: "[::]:8443"
- name: BLOOMERY_REPORT_URL
  value: https://{{ include "bloomery.fullname" . }}.{{ .Release.Namespace }}.svc:8443
- name: BLOOMERY_REPORT_CA_SECRET
  value: {{ include "bloomery.reportCaSecret" . }}
- name: BLOOMERY_LEASE_NAME
  value: {{ include "bloomery.leaseName" . }}
- name: BLOOMERY_WORKER_IMAGE
  value: {{ include "bloomery.image" (dict "image" .Values.worker.image "root" .) }}
- name: BLOOMERY_WORKER_IMAGE_PULL_POLICY
  value: {{ .Values.worker.image.pullPolicy }}
- name: BLOOMERY_WORKER_RESOURCES
  value: {{ toJson .Values.worker.resources | quote }}
- name: BLOOMERY_RUN_AS_USER
  value: {{ int64 .Values.worker.runAsUser | quote }}
- name: BLOOMERY_RUN_AS_GROUP
  value: {{ int64 .Values.worker.runAsGroup | quote }}
- name: BLOOMERY_FS_GROUP
  value: {{ int64 .Values.worker.fsGroup | quote }}
{{- if .Values.uidsFromPlatform }}
- name: BLOOMERY_UIDS_FROM_PLATFORM
  value: "true"
{{- end }}
{{- with .Values.worker.endpointRanges }}
- name: BLOOMERY_WORKER_ENDPOINT_RANGES
  value: {{ join "," . | quote }}
{{- end }}
- name: BLOOMERY_WORKER_POD
  value: {{ pick .Values.worker "imagePullSecrets" "nodeSelector" "tolerations" "priorityClassName" "runtimeClassName" "hostUsers" "podLabels" "podAnnotations" "skillMaySet" | toJson | quote }}
- name: BLOOMERY_WORKER_LOG_FORMAT
  value: {{ include "bloomery.workerLogFormat" . }}
- name: BLOOMERY_WORKER_SECRET_WAIT
  value: {{ .Values.worker.secretWait }}
- name: BLOOMERY_POD_RETENTION
  value: {{ .Values.worker.podRetention }}
{{- /* An upgrade with `--reuse-values` from an older chart has no values of `memory.focusCacheSize`, `memory.logs`, `mcp.resources`,
`mcp.maxResources` and `jobs`. */}}
{{- with .Values.memory.focusCacheSize }}
- name: BLOOMERY_FOCUS_CACHE_SIZE
  value: {{ . | quote }}
{{- end }}
{{- with .Values.memory.logs }}
- name: BLOOMERY_LOG_MAX_AGE
  value: {{ .maxAge | default "720h" }}
- name: BLOOMERY_LOG_MAX_COUNT
  value: {{ dig "maxCount" 1000 . | int64 | quote }}
- name: BLOOMERY_LOG_MAX_SIZE
  value: {{ .maxSize | default "1Gi" | quote }}
{{- end }}
- name: BLOOMERY_MCP_POD
  value: {{ pick .Values.mcp "imagePullSecrets" "nodeSelector" "tolerations" "priorityClassName" "runtimeClassName" "hostUsers" "podLabels" "podAnnotations" "skillMaySet" | toJson | quote }}
- name: BLOOMERY_MCP_RESOURCES
  value: {{ .Values.mcp.resources | default dict | toJson | quote }}
- name: BLOOMERY_MCP_MAX_RESOURCES
  value: {{ .Values.mcp.maxResources | default dict | toJson | quote }}
- name: BLOOMERY_NETWORK
  value: {{ include "bloomery.network" . | quote }}
- name: BLOOMERY_TENANTS
  value: {{ include "bloomery.tenants" . | quote }}
- name: BLOOMERY_MEMORY_SIZE
  value: {{ .Values.memory.size | quote }}
- name: BLOOMERY_MEMORY_ACCESS_MODE
  value: {{ .Values.memory.accessMode }}
{{- with .Values.memory.storageClassName }}
- name: BLOOMERY_MEMORY_CLASS
  value: {{ . | quote }}
{{- end }}
{{- with (.Values.jobs).maxRunning }}
- name: BLOOMERY_MAX_RUNNING_JOBS
  value: {{ int64 . | quote }}
{{- end }}
{{- with (.Values.jobs).maxRunningPerNamespace }}
- name: BLOOMERY_MAX_RUNNING_JOBS_PER_NAMESPACE
  value: {{ int64 . | quote }}
{{- end }}
{{- with (.Values.jobs).childWait }}
- name: BLOOMERY_CHILD_WAIT
  value: {{ . }}
{{- end }}
- name: BLOOMERY_APPROVAL_EXPIRY
  value: {{ .Values.approvals.expiry }}
- name: BLOOMERY_REPLY_EXPIRY
  value: {{ .Values.replies.expiry }}
{{- if .Values.skillTemplates.enabled }}
- name: BLOOMERY_SKILL_TEMPLATES
  value: /etc/bloomery/skill-templates
{{- end }}
- name: BLOOMERY_APPROVALS
  value: {{ include "bloomery.guardedPolicies" . | quote }}
{{- /* Settings of the C library's allocator. The operator caches thousands of waiting Jobs, and each further arena would keep the
       memory that was freed in it. */}}
- name: MALLOC_ARENA_MAX
  value: "1"
- name: MALLOC_TRIM_THRESHOLD_
  value: "65536"
{{- end }}
