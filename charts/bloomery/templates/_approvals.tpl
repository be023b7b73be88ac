{{/* The admission policy for decisions on Approvals. It contains all defaults that the API server would add, because the operator
     compares the stored policy with this one, and creates no Approval if they differ. */}}
{{- define "bloomery.approvalsName" -}}
{{ include "bloomery.fullname" . }}-approvals
{{- end }}

{{- define "bloomery.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "bloomery.serviceAccountName" . }}
{{- end }}

{{- define "bloomery.approvalPolicy" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [bloomery.dev]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [approvals, approvals/status]
      scope: Namespaced
variables:
  - name: isOperator
    expression: request.userInfo.username == {{ include "bloomery.operatorUser" . | squote }}
  - name: isServiceAccount
    expression: request.userInfo.username.startsWith('system:serviceaccount:')
  - name: isOfStatus
    expression: has(request.subResource) && request.subResource == 'status'
  - name: decides
    expression: request.operation == 'UPDATE' && !variables.isOfStatus && has(object.spec.decision) && !has(oldObject.spec.decision)
  - name: expires
    expression: variables.decides && object.spec.decision.verdict == 'Expired'
  - name: isOfCluster
    expression: request.userInfo.username in ['system:kube-controller-manager', 'system:serviceaccount:kube-system:generic-garbage-collector']
validations:
  - expression: request.operation != 'CREATE' || variables.isOperator
    message: only the operator may create an Approval
    reason: Forbidden
  - expression: request.operation != 'CREATE' || !has(object.spec.decision)
    message: an Approval must be created without a decision
    reason: Forbidden
  - expression: request.operation != 'UPDATE' || variables.isOperator || variables.isOfCluster || (object.metadata.?labels == oldObject.metadata.?labels && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences && object.metadata.?finalizers == oldObject.metadata.?finalizers)
    message: only the operator may change the labels, owners and finalizers of an Approval
    reason: Forbidden
  - expression: "!variables.isOfStatus || variables.isOperator"
    message: only the operator may write the status of an Approval
    reason: Forbidden
  - expression: "!variables.decides || object.spec.decision.by == request.userInfo.username"
    messageExpression: "'spec.decision.by must be your own name, ' + request.userInfo.username"
    message: spec.decision.by must be your own name
    reason: Forbidden
  - expression: "!variables.expires || variables.isOperator"
    message: only the operator may set the verdict Expired
    reason: Forbidden
  - expression: "!variables.decides || variables.expires || !variables.isOperator"
    message: the operator may set only the verdict Expired
    reason: Forbidden
  - expression: "!variables.decides || variables.expires || !request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':') || !request.userInfo.username.endsWith('-worker')"
    message: a worker may not decide on an Approval
    reason: Forbidden
{{- if .Values.approvals.refuseServiceAccounts }}
  - expression: "!variables.decides || variables.expires || !variables.isServiceAccount"
    message: a service account may not decide on an Approval (approvals.refuseServiceAccounts)
    reason: Forbidden
{{- end }}
  - expression: >-
      !variables.decides || variables.expires
      || authorizer.group('bloomery.dev').resource('approvers').namespace(request.namespace).name(oldObject.spec.approver).check('approve').allowed()
    messageExpression: "request.userInfo.username + ' may not approve for ' + oldObject.spec.approver + ': it needs the verb approve on approvers/' + oldObject.spec.approver + ' in the group bloomery.dev'"
    message: you may not approve for this approver
    reason: Forbidden
{{- end }}

{{- define "bloomery.approvalBinding" -}}
policyName: {{ include "bloomery.approvalsName" . }}
validationActions: [Deny]
{{- end }}
